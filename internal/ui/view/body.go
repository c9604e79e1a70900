package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Body returns the bytes of a message or a state for people: JSON is indented, anything else stays as it is.
func Body(data []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return string(data)
	}
	return b.String()
}

// bodyOf returns the bytes of a message in JSON: as text if they are UTF-8.
func bodyOf(data []byte) Object {
	if utf8.Valid(data) {
		return Object{"body", string(data)}
	}
	return Object{"body_base64", base64.StdEncoding.EncodeToString(data)}
}

func sizeOf(data []byte) string { return fmt.Sprintf("%d bytes", len(data)) }
