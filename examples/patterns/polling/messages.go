package polling

// Export starts the wait for an export that an external system makes.
type Export struct {
	Name string `json:"name"`
}

// Look requests its progress. The answer is Progress.
type Look struct {
	Name string `json:"name"`
}
type Progress struct {
	Done bool   `json:"done"`
	File string `json:"file"`
}

// Exported and ExportFailed are the two ends.
type Exported struct {
	Name string `json:"name"`
	File string `json:"file"`
}
type ExportFailed struct {
	Name string `json:"name"`
}

// LookAgain and GiveUp are timeouts.
type LookAgain struct{}
type GiveUp struct{}

func (Export) Kind() string       { return "export.start" }
func (Look) Kind() string         { return "export.look" }
func (Progress) Kind() string     { return "export.progress" }
func (Exported) Kind() string     { return "export.done" }
func (ExportFailed) Kind() string { return "export.failed" }
func (LookAgain) Kind() string    { return "export.look-again" }
func (GiveUp) Kind() string       { return "export.give-up" }
