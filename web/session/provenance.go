package session

import (
	"fmt"

	"palimpsest/web/components"
)

// rule names the rule that shortened the turn, and the window's use at that time.
func (p pane) rule() string {
	rule := fmt.Sprintf("Compression, %s, reason: %s", components.LevelName(p.Level), reasonName(p.Epoch.Reason))
	if window := p.Epoch.Window; window > 0 {
		rule += fmt.Sprintf("; utilization was %.2f", float64(p.Epoch.Before)/float64(window))
	}
	return rule
}
