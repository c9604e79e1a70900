package timetable

import (
	"encoding/json"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// numbers are the numeric settings of a manifest, with defaults filled in.
type numbers struct {
	retries                        int
	retryDelay, retryMost, timeout time.Duration // timeout 0 is no timeout
}

// read checks manifests as a deploy does, by means of the file that "edda manifest diff" reads: it holds the
// definition that a server evaluates.
func read(declared []scheduler.Manifest) ([]*manifest, error) {
	all := scheduler.Declaration{Owner: "memory", Manifests: declared}
	text, err := scheduler.MarshalDeclaration(all, noCodec{})
	if err != nil {
		return nil, err
	}
	var file struct {
		Manifests []struct {
			Definition    plan.Definition `json:"definition"`
			Retries       int             `json:"retries"`
			RetryDelay    string          `json:"retry_delay"`
			MaxRetryDelay string          `json:"retry_most"`
			Timeout       string          `json:"timeout"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	read := make([]*manifest, len(declared))
	for i, f := range file.Manifests {
		p, err := f.Definition.Compile()
		if err != nil {
			return nil, err
		}
		read[i] = &manifest{Manifest: declared[i], plan: p, numbers: numbers{
			f.Retries, duration(f.RetryDelay), duration(f.MaxRetryDelay), duration(f.Timeout),
		}}
	}
	return read, nil
}

// duration parses the output of time.Duration.String; "" is 0.
func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// noCodec returns empty bodies: messages are not encoded here.
type noCodec struct{}

func (noCodec) ContentType() string                 { return "" }
func (noCodec) Encode(saga.Message) ([]byte, error) { return nil, nil }
func (noCodec) Decode([]byte, any) error            { return nil }
