# The image of the operator: Node, the libraries it is linked to, the program, and nothing else. No shell, no
# package manager; runs as a user of no name, on a root file system that may be read-only.
#
#   docker build -t taskflow-operator:<version> .

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build

FROM node:24-bookworm-slim AS dependencies
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

# What node needs of its system, at the same paths; whatever the architecture, ldd knows them.
FROM node:24-bookworm-slim AS system
RUN mkdir -p /system/etc /system/tmp \
 && chmod 1777 /system/tmp \
 && cp --parents --dereference /usr/local/bin/node $(ldd /usr/local/bin/node | grep -o '/[^ ]*') /system \
 && echo 'operator:x:65532:65532:operator:/tmp:/sbin/nologin' > /system/etc/passwd \
 && echo 'operator:x:65532:' > /system/etc/group

FROM scratch
COPY --from=system /system /
WORKDIR /app
COPY --from=dependencies /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY package.json LICENSE ./
COPY bin ./bin
ENV NODE_ENV=production HOME=/tmp
USER 65532:65532
EXPOSE 8080 8081 9443
ENTRYPOINT ["/usr/local/bin/node", "--enable-source-maps", "/app/bin/taskflow.js"]
CMD ["run"]
