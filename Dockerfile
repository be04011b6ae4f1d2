# Mneme in a container: not root, with a read-only file system, and everything that it keeps in the volume /data.
FROM python:3.13-slim

RUN useradd --uid 10001 --create-home mneme && mkdir /data && chown mneme:mneme /data
WORKDIR /opt/mneme
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE LICENSE-OpenCC ./
COPY config ./config
COPY core ./core
COPY adapters ./adapters
COPY gateway ./gateway
RUN pip install --no-cache-dir --no-deps . && rm -rf build

USER mneme
# The home is a folder inside the volume, so that the record of erasures next to it is in the volume, too.
ENV MNEME_HOME=/data/home PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
VOLUME /data
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s CMD ["mneme", "status", "--alive"]
ENTRYPOINT ["mneme"]
CMD ["run"]
