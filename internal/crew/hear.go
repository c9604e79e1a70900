package crew

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Lines is a writer for Job.Stdout or Job.Stderr that calls hear with each whole line. What a kill has cut off in the
// middle of a line is not heard. Each worker needs one of its own.
func Lines(hear func(line string)) io.Writer { return &lines{hear: hear} }

type lines struct {
	hear func(string)
	rest []byte // of a line whose end has not come
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		l.hear(string(line))
		l.rest = rest
	}
}

// tail keeps the last of what a worker says.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
