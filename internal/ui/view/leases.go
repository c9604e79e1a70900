package view

import (
	"time"

	"github.com/edda-go/edda/scheduler"
)

// Leases shows all leases that were ever held.
func Leases(all []scheduler.LeaseInfo) List {
	return listOf("leases", "NAME|HOLDER|EPOCH|HELD|SINCE|EXPIRES", all, leaseRow)
}

func leaseRow(i scheduler.LeaseInfo) Row {
	held, left := "no", time.Duration(0)
	if i.Held {
		held, left = "yes", i.Expires.Sub(i.Now)
	}
	if i.Held && i.Resigning {
		held = "resigning"
	}
	return Row{
		JSON: Object{"name", i.Name, "holder", i.Holder, "epoch", i.Epoch, "held", i.Held, "resigning", i.Resigning,
			"acquired", timeOrNull(i.Acquired), "renewed", timeOrNull(i.Renewed), "expires", timeOrNull(i.Expires),
			"expires_in_seconds", left.Seconds()}, // 0 if it is free
		Cells: []string{i.Name, i.Holder, wide(i.Epoch), held, Moment(i.Acquired), span(left)},
	}
}
