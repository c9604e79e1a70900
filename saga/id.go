package saga

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
)

// ID identifies a message or an instance. Edda makes UUIDs of version 7. The zero ID means "no id".
type ID [16]byte

const idText = 36 // length of xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx

// ParseID parses the canonical text of a UUID, in lower or upper case. Any other text is an error.
func ParseID(s string) (ID, error) {
	if len(s) != idText || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("id of %d bytes: want xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", len(s))
	}
	var id ID
	digits := [32]byte{}
	n := 0
	for i := 0; i < idText; i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		digits[n] = s[i]
		n++
	}
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return ID{}, errors.New("id has other characters than hexadecimal digits and dashes: want " +
			"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
	}
	return id, nil
}

// String returns the canonical text, in lower case.
func (id ID) String() string {
	b := id.text()
	return string(b[:])
}

func (id ID) text() (b [idText]byte) {
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return b
}

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by their bytes. Of two ids made by one process, the later one is greater.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText returns the canonical text, so that an ID is a string in JSON.
func (id ID) MarshalText() ([]byte, error) {
	b := id.text()
	return b[:], nil
}

// UnmarshalText parses the canonical text, as ParseID does.
func (id *ID) UnmarshalText(b []byte) error {
	got, err := ParseID(string(b))
	if err != nil {
		return err
	}
	*id = got
	return nil
}
