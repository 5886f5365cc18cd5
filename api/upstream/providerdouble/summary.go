package providerdouble

import "strings"

// Notes is a good answer to a request for a summary: it has every requested section, without anything to
// correct.
const Notes = `## Goal
- Carry the work on.

## Constraints & Preferences
(none)

## Progress
### Done
- The first steps.

### In progress
(none)

### Blocked
(none)

## Key decisions
(none)

## Next steps
- The next step.

## Critical context
- Everything before is in the notes.`

// AsksForNotes reports whether a request asks for a summary under headings.
func AsksForNotes(r Request) bool {
	body := string(r.Body)
	return strings.Contains(body, "## Key decisions") && strings.Contains(body, "## Critical context") &&
		(strings.Contains(r.User, "Write the notes now") || strings.Contains(r.User, "This is not a message of the user"))
}

// WithNotes returns a script that answers requests for a summary with notes, and all others with script.
func WithNotes(script, notes Script) Script {
	return func(r Request) Reply {
		if AsksForNotes(r) {
			return notes(r)
		}
		return script(r)
	}
}
