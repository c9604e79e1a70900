package procs

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Lines returns a writer for Job.Stdout or Job.Stderr that calls each with every complete line. A line that a kill cut
// off is dropped. Each worker needs a writer of its own.
func Lines(each func(line string)) io.Writer { return &lines{each: each} }

type lines struct {
	each func(string)
	rest []byte // the beginning of a line whose end has not come
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		l.each(string(line))
		l.rest = rest
	}
}

// tail keeps the end of what a worker writes.
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
