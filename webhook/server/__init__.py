"""The HTTP shell: Flask application, metrics, logs, gunicorn."""

from webhook.server.settings import ServeError, Settings

__all__ = ["ServeError", "Settings", "run"]


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ServeError: a file is bad or missing, or a port in use; nothing was served.
    """
    from webhook.server.process import serve  # noqa: PLC0415  gunicorn and Flask only for those who serve

    serve(settings)
