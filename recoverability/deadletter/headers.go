package deadletter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Header is a header of a message. Only the bus sets names that begin with "edda-".
type Header struct{ Name, Value string }

// Headers decodes the headers of a dead letter and sorts them by name. It returns a value that is not a string as
// JSON. A header that is not a JSON object is an error (and often why the message failed); Header has the bytes.
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
