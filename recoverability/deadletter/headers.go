package deadletter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Header is one name and value that came with a message. The names that begin with "edda-" are the bus's own.
type Header struct{ Name, Value string }

// Headers decodes the header of a dead letter, sorted by name. A value that is no string is given as its JSON. A header
// that is no JSON object is an error, and often the very reason why the message died: Header has its bytes.
func (l *Letter) Headers() ([]Header, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(l.Header, &values); err != nil {
		return nil, fmt.Errorf("header of dead letter %d: %w", l.Number, err)
	}
	headers := make([]Header, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := ""
		if json.Unmarshal(values[name], &text) != nil {
			text = string(values[name])
		}
		headers = append(headers, Header{name, text})
	}
	return headers, nil
}
