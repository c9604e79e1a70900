package scheduler

import "github.com/robfig/cron/v3"

// parser reads five fields, or six with the seconds first, and names like @daily.
var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
