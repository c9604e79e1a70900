// What builds the documentation site, pinned apart from the library's own dependencies.
module github.com/edda-go/edda/docs/site

go 1.25.0

require (
	github.com/alecthomas/chroma/v2 v2.24.1
	github.com/yuin/goldmark v1.8.7
	golang.org/x/mod v0.34.0
	golang.org/x/net v0.52.0
)

require github.com/dlclark/regexp2 v1.12.0 // indirect
