# The command edda, alone in an image of some 20 MB: no shell, no libc, no root.
#
#     docker build --build-arg VERSION=1.2.3 -t edda .
#     docker run --rm -e DATABASE_URL edda migrate status
#     docker run --rm -e DATABASE_URL -p 7433:7433 -v ./users:/users:ro edda ui --listen 0.0.0.0:7433 --auth basic:/users
#     (users has mode 600 and the owner 65532)
#
# For a program of yours see examples/kubernetes/Dockerfile, and docs/operate/kubernetes.md.
ARG GO_IMAGE=golang:1.25

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
# timetzdata: the image has no zones, and schedules need them.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -tags timetzdata \
    -ldflags "-s -w -X main.stamped=$VERSION" -o /out/edda ./cmd/edda

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/edda /edda
USER 65532:65532
EXPOSE 7433
# For "edda ui"; other commands have ended before the first look.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/edda", "healthcheck", "http://127.0.0.1:7433/health/live"]
ENTRYPOINT ["/edda"]
