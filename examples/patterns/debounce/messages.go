package debounce

// Edited is the event of a change of a document.
type Edited struct {
	Document string `json:"document"`
}

// Index requests an update of a document's entry in the search index.
type Index struct {
	Document string `json:"document"`
}

// Quiet is the timeout of a burst.
type Quiet struct{}

func (Edited) Kind() string { return "document.edited" }
func (Index) Kind() string  { return "document.index" }
func (Quiet) Kind() string  { return "document.quiet" }
