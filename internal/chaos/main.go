package main

import (
	"github.com/edda-go/edda/internal/chaos/crash"
	"github.com/edda-go/edda/internal/chaos/hostile"
	"github.com/edda-go/edda/internal/chaos/lab"
	"github.com/edda-go/edda/internal/chaos/limits"
	"github.com/edda-go/edda/internal/chaos/permits"
	"github.com/edda-go/edda/internal/chaos/remote"
	"github.com/edda-go/edda/internal/chaos/schedule"
	"github.com/edda-go/edda/internal/chaos/viewers"
)

func main() {
	lab.Main(crash.Scenario, limits.Limits, limits.Order, schedule.Scenario, hostile.Scenario, permits.Scenario,
		remote.Scenario, viewers.Scenario)
}
