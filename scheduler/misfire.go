package scheduler

import "fmt"

var misfireNames = [...]string{MisfireOnce: "once", MisfireSkip: "skip", MisfireAll: "all"}

// String is "once", "skip" or "all".
func (m Misfire) String() string {
	if int(m) < len(misfireNames) {
		return misfireNames[m]
	}
	return fmt.Sprintf("misfire(%d)", uint8(m))
}

// MarshalText writes what String says.
func (m Misfire) MarshalText() ([]byte, error) {
	if int(m) >= len(misfireNames) {
		return nil, fmt.Errorf("Misfire: %d: want MisfireOnce, MisfireSkip or MisfireAll", uint8(m))
	}
	return []byte(misfireNames[m]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (m *Misfire) UnmarshalText(text []byte) error {
	for i, name := range misfireNames {
		if string(text) == name {
			*m = Misfire(i)
			return nil
		}
	}
	return fmt.Errorf("Misfire of %d bytes: want once, skip or all", len(text))
}
