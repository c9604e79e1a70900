package pg

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// arrayTextPlan writes an Array as text, for a connection whose owner has given its type a codec without a binary
// form.
type arrayTextPlan struct{}

func (arrayTextPlan) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(*Array)
	if a.spent {
		return nil, errSpent
	}
	buf = a.appendText(buf)
	a.spend()
	return buf, nil
}

var quoteElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// appendText reads back the binary elements and writes them as text.
func (a *Array) appendText(buf []byte) []byte {
	buf = append(buf, '{')
	for n, rest := 0, *a.data; n < a.count; n++ {
		if n > 0 {
			buf = append(buf, ',')
		}
		size := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if size < 0 {
			buf = append(buf, "NULL"...)
			continue
		}
		buf = append(buf, '"')
		buf = append(buf, quoteElement.Replace(elementText(a.element, rest[:size]))...)
		buf = append(buf, '"')
		rest = rest[size:]
	}
	return append(buf, '}')
}

// elementText returns the text of one element.
func elementText(element uint32, data []byte) string {
	switch element {
	case pgtype.UUIDOID:
		return hex.EncodeToString(data)
	case pgtype.ByteaOID:
		return `\x` + hex.EncodeToString(data)
	case pgtype.Int4OID:
		return strconv.Itoa(int(int32(binary.BigEndian.Uint32(data))))
	case pgtype.Int8OID:
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(data)), 10)
	case pgtype.TimestamptzOID:
		at := int64(binary.BigEndian.Uint64(data)) + postgresEpoch
		return time.UnixMicro(at).UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	case pgtype.TIDOID:
		return "(" + strconv.Itoa(int(binary.BigEndian.Uint32(data))) + "," +
			strconv.Itoa(int(binary.BigEndian.Uint16(data[4:]))) + ")"
	}
	return string(data)
}
