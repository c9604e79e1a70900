package main

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/scheduler"
)

const (
	owner     = "scheduled" // of the manifests
	zone      = "Europe/Oslo"
	groupName = "settlement"
	groupMax  = 2
	pollEvery = 5 * time.Second
	failing   = "rates"
)

var currencies = []string{"eur", "gbp", "nok", "usd"}

func settleName(currency string) string { return "settle/" + currency }
func reportName(currency string) string { return "report/" + currency }

func groups() []scheduler.Group {
	return []scheduler.Group{{Name: groupName, Max: groupMax, Strict: true}}
}

// manifests are what both servers declare. Nothing that a clock decides is due from until on, so that the show has an
// end at which the firings can be counted. MisfireAll leaves no due time out, whoever was dead when it came.
func manifests(night time.Duration, until time.Time) []scheduler.Manifest {
	var all []scheduler.Manifest
	for _, c := range currencies {
		all = append(all, scheduler.Manifest{
			Name:    settleName(c),
			When:    scheduler.Cron(fmt.Sprintf("*/%d * * * * *", int(night.Seconds())), zone),
			Message: Settle{Currency: c},
			Group:   groupName,
			Misfire: scheduler.MisfireAll,
			Expires: until,
		})
	}
	for _, c := range currencies {
		all = append(all, scheduler.Manifest{Name: reportName(c), When: scheduler.After(settleName(c)),
			Message: Report{Currency: c}})
	}
	return append(all,
		scheduler.Manifest{Name: "poll", When: scheduler.Every(pollEvery), Message: Poll{},
			Misfire: scheduler.MisfireAll, Expires: until},
		scheduler.Manifest{Name: failing, When: scheduler.Every(time.Second), Message: ReadRates{},
			Misfire: scheduler.MisfireAll, Expires: until})
}
