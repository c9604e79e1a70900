// Command collector is an OpenTelemetry Collector: that of go.opentelemetry.io/collector, with its receiver of OTLP and
// its exporter to files. It receives spans and metrics at 127.0.0.1:4317 over gRPC, and writes traces.json and
// metrics.json into its directory, one batch a line.
//
//	go run .
//	OTLP_ENDPOINT=127.0.0.1:4999 OTLP_FILES=/tmp go run .
//	go run . --config=file:mine.yaml
//
// It is a separate module, because it links the Collector. Its test runs examples/two-databases in several processes
// that export to it, and reads the files: make collector.
//
// # Promise
//
// It is for tests, and for inspecting the spans and metrics that a program exports.
//
// # Failures
//
// It ends with an error if its address is taken, or if it cannot open its files. It overwrites the files of an earlier
// run.
package main
