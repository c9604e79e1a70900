package plan

import "fmt"

// Misfire is a policy for due times that passed without a run.
type Misfire uint8

// Policies.
const (
	MisfireOnce Misfire = iota // one run, for the last due time that was missed
	MisfireSkip                // no run: the next due time is the next to fire
	MisfireAll                 // one run for each, in their order, up to Definition.MisfireUp
)

var misfireNames = [...]string{MisfireOnce: "once", MisfireSkip: "skip", MisfireAll: "all"}

// String returns "once", "skip" or "all".
func (m Misfire) String() string {
	if int(m) < len(misfireNames) {
		return misfireNames[m]
	}
	return fmt.Sprintf("misfire(%d)", uint8(m))
}

// MarshalText returns String as bytes.
func (m Misfire) MarshalText() ([]byte, error) {
	if int(m) >= len(misfireNames) {
		return nil, fmt.Errorf("Misfire: %d: want MisfireOnce, MisfireSkip or MisfireAll", uint8(m))
	}
	return []byte(misfireNames[m]), nil
}

// UnmarshalText parses the output of MarshalText.
func (m *Misfire) UnmarshalText(text []byte) error {
	for i, name := range misfireNames {
		if string(text) == name {
			*m = Misfire(i)
			return nil
		}
	}
	return fmt.Errorf("Misfire of %d bytes: want once, skip or all", len(text))
}
