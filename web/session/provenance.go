package session

import (
	"fmt"

	"palimpsest/web/components"
)

// rule says which rule shortened the turn, and how full the window was then.
func (p pane) rule() string {
	rule := fmt.Sprintf("ipc, %s, because of %s", components.LevelName(p.Level), reasonName(p.Epoch.Reason))
	if window := p.Epoch.Window; window > 0 {
		rule += fmt.Sprintf("; utilization was %.2f", float64(p.Epoch.Before)/float64(window))
	}
	return rule
}
