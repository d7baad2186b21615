# Two stages, so that neither pip's caches nor a compiler end up in the image.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock requirements-dev.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/numalign && /opt/numalign/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
# the build backend comes from the lock too, into an environment of its own
RUN python -m venv /build && /build/bin/pip install --no-cache-dir --require-hashes -r requirements-dev.lock
COPY webhook webhook
COPY tls tls
RUN /build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation -w /wheels . \
 && /opt/numalign/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
 && /opt/numalign/bin/python -m compileall -q /opt/numalign/lib

FROM python:3.11-slim
COPY --from=build /opt/numalign /opt/numalign
ENV PATH=/opt/numalign/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["numalign"]
