package debounce

// Edited says that a document has changed.
type Edited struct {
	Document string `json:"document"`
}

// Index asks for a document to be read, and written to the index of the search.
type Index struct {
	Document string `json:"document"`
}

// Quiet is the timeout of a burst.
type Quiet struct{}

func (Edited) Kind() string { return "document.edited" }
func (Index) Kind() string  { return "document.index" }
func (Quiet) Kind() string  { return "document.quiet" }
