# Two images from one file. Both run as a user without rights, on a read-only root file system; only the data folder
# is written to.
#   docker build -t normalcy:cpu .                    cpu, the default: NumPy, no TensorFlow
#   docker build -t normalcy:gpu --target gpu .       TensorFlow with its CUDA libraries
# docs/containers.md says how to pin the base by its digest, and how to name the commit.

ARG BASE=debian:bookworm-slim
FROM ${BASE} AS python
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log /usr/share/doc/* /usr/share/man/*

# pip stays in a stage of its own: what runs cannot install anything.
FROM python AS installer
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils python3-venv \
    && python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/venv \
    && echo /opt/normalcy > /opt/venv/lib/python3.11/site-packages/normalcy.pth
WORKDIR /requirements

# Less by 60 MB: the tests of NumPy and SciPy, which nothing imports, and the debugging symbols of uvloop, asyncpg and
# SQLAlchemy. The libraries of NumPy and SciPy stay as they are: stripped, they do not load.
FROM installer AS cpu-packages
COPY requirements/serve.txt .
RUN /opt/pip/bin/pip --python /opt/venv install --quiet --no-cache-dir --require-hashes -r serve.txt \
    && cd /opt/venv/lib/python3.11/site-packages \
    && find numpy scipy -type d -name tests -prune -exec rm -r {} + \
    && find . -name '*.so' -not -path './numpy*' -not -path './scipy*' -exec strip --strip-debug {} +

FROM installer AS gpu-packages
COPY requirements/gpu.txt .
RUN /opt/pip/bin/pip --python /opt/venv install --quiet --no-cache-dir --require-hashes -r gpu.txt

# Compiled here, because nothing can be at run time. `unchecked-hash` keeps the result valid whatever time a copy has.
FROM python AS program
WORKDIR /opt/normalcy
COPY migrations migrations
COPY app app
COPY docs app/docs
RUN python3 -m compileall -q --invalidation-mode unchecked-hash app migrations

FROM python AS service
# By number, so that Kubernetes can see that it is not root.
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/normalcy normalcy \
    && install -d -m 700 -o 10001 -g 10001 /var/lib/normalcy \
    && printf '#!/opt/venv/bin/python\nfrom app.cli.main import main\n\nif __name__ == "__main__":\n    main()\n' > /usr/local/bin/normalcy \
    && chmod 755 /usr/local/bin/normalcy
ENV NORMALCY_HOST=0.0.0.0 \
    NORMALCY_DATA_DIR=/var/lib/normalcy \
    NORMALCY_MODELS_DIR=/opt/normalcy/models_store \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1
WORKDIR /opt/normalcy
COPY models_store models_store
USER 10001:10001
VOLUME /var/lib/normalcy
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
    CMD ["/opt/venv/bin/python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('NORMALCY_PORT', '8000') + '/health/live', timeout=4)"]
ENTRYPOINT ["normalcy"]
CMD ["serve"]

FROM service AS gpu
COPY --from=gpu-packages /opt/venv /opt/venv
COPY --from=program /opt/normalcy /opt/normalcy
# The driver comes from the host; what it compiles is kept in memory, for there is nothing else to write to.
ENV NORMALCY_BACKEND=tensorflow \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    CUDA_CACHE_PATH=/tmp/cuda
ARG COMMIT=unknown
ENV NORMALCY_COMMIT=${COMMIT}

FROM service AS cpu
COPY --from=cpu-packages /opt/venv /opt/venv
COPY --from=program /opt/normalcy /opt/normalcy
ARG COMMIT=unknown
ENV NORMALCY_COMMIT=${COMMIT}
