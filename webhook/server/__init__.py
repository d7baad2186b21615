"""The HTTP shell: Flask application, metrics, logs, gunicorn."""
