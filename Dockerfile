# syntax=docker/dockerfile:1
# The image of a node: docker build -t signalbox . (docs/operations/docker.md). It runs as uid 1000 and writes only below /data, and there
# only without DATABASE_URL: its root file system can be read-only.
#
# To pin the base image by its digest: --build-arg NODE_IMAGE=node:26.12.1-trixie-slim@sha256:…
ARG NODE_IMAGE=node:26.12.1-trixie-slim

FROM ${NODE_IMAGE} AS sources
WORKDIR /signalbox
COPY . .

# The console is built here, so none of its tools are in the image.
FROM sources AS console
RUN --mount=type=cache,target=/root/.npm \
    npm ci --workspace @signalbox/console --no-audit --no-fund && node packages/console/scripts/build.mjs

# What the service needs at run time, in the versions of the lock file. Development dependencies are removed first, because npm would
# install some of them as optional peers (170 MB).
FROM sources AS service
RUN npm pkg set --json 'workspaces=["packages/cli","packages/client","packages/console","packages/contract","packages/embedded-postgres","packages/server"]' \
    && npm pkg delete devDependencies --workspaces --include-workspace-root \
    && npm pkg delete optionalDependencies
RUN --mount=type=cache,target=/root/.npm \
    npm install --no-audit --no-fund \
    && rm -rf packages/console packages/create-signalbox packages/react examples scripts package-lock.json tsconfig.json
COPY --from=console /signalbox/packages/console/package.json packages/console/
COPY --from=console /signalbox/packages/console/dist packages/console/dist

FROM ${NODE_IMAGE}
COPY --from=service /signalbox /signalbox
RUN ln -s /signalbox/node_modules/.bin/signalbox /usr/local/bin/signalbox \
    && mkdir /data && chown 1000:1000 /data && chmod 700 /data
ENV NODE_ENV=production \
    SIGNALBOX_HOST=0.0.0.0 \
    SIGNALBOX_DATA_DIR=/data
USER 1000:1000
WORKDIR /data
VOLUME /data
EXPOSE 4500
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s \
    CMD ["node", "/signalbox/deploy/docker/healthy.mjs"]
ENTRYPOINT ["signalbox"]
CMD ["start"]
