# syntax=docker/dockerfile:1
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS TARGETARCH VERSION=devel REVISION=unknown CREATED=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -tags grpcnotrace -gcflags 'curfew/cmd/internal/dashboard/...=-l -dwarf=false' -gcflags 'github.com/redis/...=-l -dwarf=false' -ldflags "-s -w -X main.version=$VERSION -X main.commit=$REVISION -X main.commitTime=$CREATED" -o /out/curfew ./cmd/curfew
RUN mkdir -p /out/var/lib/curfew

# Nothing but the binary, the CA certificates for rediss:// and https:// alerts, and an empty data folder. `make release` builds the same image
# from the instructions of this stage, without an engine.
FROM scratch
ARG VERSION=devel REVISION=unknown CREATED=unknown
LABEL org.opencontainers.image.title="Curfew" \
      org.opencontainers.image.description="AMQP 0-9-1 broker whose message deadlines fire on time, with nobody consuming" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.vendor="The Curfew authors" \
      org.opencontainers.image.base.name="scratch"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/var/lib/curfew /var/lib/curfew
COPY --from=build /out/curfew /curfew

# On loopback the ports would be unreachable from outside the container. The guest account stays limited to loopback: set CURFEW_USER
# and CURFEW_PASSWORD.
ENV CURFEW_AMQP_ADDR=0.0.0.0:5672 \
    CURFEW_HTTP_ADDR=0.0.0.0:15672 \
    CURFEW_OPS_ADDR=0.0.0.0:15692 \
    CURFEW_DATA_DIR=/var/lib/curfew
EXPOSE 5672 15672 15692
VOLUME /var/lib/curfew
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/curfew","healthcheck"]
ENTRYPOINT ["/curfew"]
CMD ["serve"]
