package eddaui

import (
	"bytes"
	"flag"
	"time"

	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/operate/vitals"
)

// DatabasePage returns the page of a report on the vitals, as HTML.
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

// SetLong sets how long one request may change many instances.
func (u *UI) SetLong(d time.Duration) { u.desk.Long = d }

// SetLimit sets how long an action may take that writes no file.
func (u *UI) SetLimit(d time.Duration) { u.desk.Limit = d }

// Update makes tests write new golden files.
var Update = flag.Bool("update", false, "write the golden files anew")
