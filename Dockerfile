# Berth's components, and the node agent: docker build --tag berth:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /build
# All of the lock file, so that every wheel is checked against its hash; the installation takes what it needs of them.
COPY requirements.txt .
RUN pip wheel --quiet --no-cache-dir --require-hashes --requirement requirements.txt --wheel-dir /wheels
COPY pyproject.toml README.md ./
COPY berth berth
COPY controllers controllers
COPY agents agents
RUN python -m venv /build/tools && python -m venv /opt/berth \
 && /build/tools/bin/pip install --quiet --no-index --find-links /wheels hatchling \
 && /build/tools/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir /wheels . \
 && /opt/berth/bin/pip install --quiet --no-index --find-links /wheels kube-berth \
 && /opt/berth/bin/pip uninstall --quiet --yes pip setuptools

FROM python:3.11-slim
# The base brings its modules without what Python makes of them. Where nothing can be written each start would make it anew,
# which takes as much processor time as all the rest of a start, and memory that stays taken.
RUN python -m compileall -q -x site-packages /usr/local/lib/python3.11
COPY --from=build /opt/berth /opt/berth
ENV PATH=/opt/berth/bin:$PATH
USER 65532:65532
ENTRYPOINT ["/opt/berth/bin/berth"]
