FROM golang:1.26-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY api api
COPY web web
COPY tenants tenants
COPY pipeline pipeline
COPY billing billing
COPY migrations migrations
COPY static static
COPY docs docs
COPY docs.go docs.go
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/palimpsest ./cmd/palimpsest

FROM debian:bookworm-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171 AS product
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/palimpsest --create-home palimpsest
COPY --from=build /out/palimpsest /usr/local/bin/palimpsest
USER palimpsest
WORKDIR /var/lib/palimpsest
ENV PALIMPSEST_ADDR=0.0.0.0:8080 \
    PALIMPSEST_ADMIN_ADDR=0.0.0.0:9090 \
    PALIMPSEST_DATA_DIR=/var/lib/palimpsest
EXPOSE 8080 9090
VOLUME /var/lib/palimpsest
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["curl", "-fsS", "http://127.0.0.1:9090/readyz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["palimpsest"]
CMD ["serve"]
