package main

import (
	"github.com/edda-go/edda/internal/test/chaos/crash"
	"github.com/edda-go/edda/internal/test/chaos/exchange"
	"github.com/edda-go/edda/internal/test/chaos/hostile"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/limits"
	"github.com/edda-go/edda/internal/test/chaos/permits"
	"github.com/edda-go/edda/internal/test/chaos/remote"
	"github.com/edda-go/edda/internal/test/chaos/schedule"
	"github.com/edda-go/edda/internal/test/chaos/viewers"
)

func main() {
	lab.Main(crash.Scenario, limits.Limits, limits.Order, schedule.Scenario, hostile.Scenario, permits.Scenario,
		remote.Scenario, viewers.Scenario, exchange.Scenario)
}
