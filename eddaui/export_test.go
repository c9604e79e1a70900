package eddaui

import (
	"bytes"
	"flag"
	"time"

	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/operate/vitals"
)

// DatabasePage is the page of a look at the vitals, as HTML.
func DatabasePage(report vitals.Report, queries bool) (string, error) {
	l, err := newLook("")
	if err != nil {
		return "", err
	}
	f := frame{Root: "./", Bodies: queries}
	f.put(page.DatabaseOf(report, queries))
	f.Now = report.At
	var b bytes.Buffer
	err = l.page(&b, "database", f)
	return b.String(), err
}

// SetLong sets for how long many instances are dealt with in one request.
func (u *UI) SetLong(d time.Duration) { u.desk.Long = d }

// SetLimit sets for how long an action may take whose outcome is no file.
func (u *UI) SetLimit(d time.Duration) { u.desk.Limit = d }

// Update says that golden files are to be written anew.
var Update = flag.Bool("update", false, "write the golden files anew")
