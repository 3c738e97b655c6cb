# The image of every process of Blockwright; docker-compose.yml says which one a container runs. See docs/deploy.md.
#
#   PYTHON       tag of the Python image of all stages
#   TORCH_INDEX  package index to take torch from, such as PyTorch's own of CPU or of CUDA wheels; empty: the default
#                index, whose wheel for x86-64 brings CUDA along (several GB)
ARG PYTHON=3.11.13-slim-bookworm

# The wheel, with the page in it; the build backend fetches Node by itself where there is none.
FROM python:${PYTHON} AS wheel
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md ./
COPY nas nas
COPY db db
COPY workers workers
COPY api api
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

# Everything that runs, in one folder: the locked packages, then our wheel.
FROM python:${PYTHON} AS packages
ARG TORCH_INDEX=""
WORKDIR /source
COPY requirements.lock ./
RUN python -m venv /opt/blockwright \
 && if [ -n "$TORCH_INDEX" ]; then \
      /opt/blockwright/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.lock)"; \
    fi \
 && /opt/blockwright/bin/pip install --no-cache-dir --requirement requirements.lock
COPY --from=wheel /wheels /wheels
RUN /opt/blockwright/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

# What is left holds no compiler, no Node, no sources of the page; it writes to /data and /tmp alone.
FROM python:${PYTHON}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 blockwright \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin blockwright \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=packages /opt/blockwright /opt/blockwright
ENV PATH=/opt/blockwright/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    BLOCKWRIGHT_DATA_DIR=/data
VOLUME ["/data"]
EXPOSE 8400
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 CMD ["blockwright", "health", "api"]
# tini waits for the orphans of killed runners, and hands on SIGTERM.
ENTRYPOINT ["tini", "--", "blockwright"]
CMD ["serve", "--host", "0.0.0.0"]
