// What the licences of all dependencies are, in a module of its own: the classifier is not for users of Edda to link.
module github.com/edda-go/edda/ci/licences

go 1.25.0

require github.com/google/licenseclassifier/v2 v2.0.0

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/sergi/go-diff v1.1.0 // indirect
)
