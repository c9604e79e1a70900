package lease

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

const (
	mostBase    = 200 // bytes of an identity before its random part
	randomBytes = 6
)

// Identity returns the name of a holder: override, or $HOSTNAME, which containers set to a name that people
// recognise, or the host's name, or a UUID, always followed by a random part. A process that starts again keeps its
// host's name, and is a different holder: it must not take the lease of its former run for its own.
func Identity(override string) string {
	host, _ := os.Hostname() // a host without a name gets one below
	return identity(override, os.Getenv("HOSTNAME"), host)
}

func identity(override, variable, host string) string {
	if checkHolder(variable) != nil {
		variable = ""
	}
	base := cmp.Or(override, variable, host)
	if base == "" {
		base = uuid.NewString()
	}
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // crypto/rand never fails
	return base[:min(len(base), mostBase)] + "/" + hex.EncodeToString(random[:])
}

// HolderVariable names the process if Options.Holder does not.
const HolderVariable = "EDDA_HOLDER"

// Holder returns the override, or the value of $EDDA_HOLDER if override is "". It returns an error if that cannot
// name a process.
func Holder(override string) (string, error) {
	override = cmp.Or(override, os.Getenv(HolderVariable))
	return override, checkHolder(override)
}

func checkHolder(override string) error {
	if len(override) > mostBase || strings.ContainsFunc(override, unicode.IsControl) ||
		strings.ToValidUTF8(override, "") != override {
		return fmt.Errorf("Holder, or $EDDA_HOLDER, %.60q must be at most %d bytes of UTF-8 without control characters",
			override, mostBase)
	}
	return nil
}

// validName is the pattern of the table's constraint.
var validName = regexp.MustCompile(`^[a-z][a-z0-9_./-]{0,126}$`)

// CheckName returns an error that describes a fault in the name of a lease, or nil.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("lease name %.60q: want 1 to 127 of a-z, 0-9 and _ . / -, beginning with a letter", name)
	}
	return nil
}
