package main

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/scheduler"
)

const (
	owner = "scheduled" // of the manifests
	zone  = "Europe/Oslo"
)

var currencies = []string{"eur", "gbp", "nok", "usd"}

func settleName(currency string) string { return "settle/" + currency }
func reportName(currency string) string { return "report/" + currency }

// settlements are done two at a time.
var groups = []scheduler.Group{{Name: "settlement", Max: 2, Strict: true}}

// manifests returns the manifests of the program. They fire once each night, the given period; a real expression would
// be
// "30 2 * * *". With MisfireAll no due time is skipped, whichever process was dead at that time.
func manifests(night time.Duration) (all []scheduler.Manifest) {
	for _, c := range currencies {
		all = append(all,
			scheduler.Manifest{Name: settleName(c), Message: Settle{Currency: c}, Group: "settlement",
				When:    scheduler.Cron(fmt.Sprintf("*/%d * * * * *", int(night.Seconds())), zone),
				Misfire: scheduler.MisfireAll},
			scheduler.Manifest{Name: reportName(c), Message: Report{Currency: c},
				When: scheduler.After(settleName(c))})
	}
	return append(all,
		scheduler.Manifest{Name: "poll", Message: Poll{}, When: scheduler.Every(5 * time.Second)},
		scheduler.Manifest{Name: "rates", Message: ReadRates{}, When: scheduler.Every(time.Second)})
}
