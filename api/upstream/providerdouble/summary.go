package providerdouble

import "strings"

// Notes is a good answer to a request for a summary: every section that is asked
// for, with nothing in them that has to be put right.
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

// WithNotes returns a script that answers requests for a summary as notes says,
// and all others as script does.
func WithNotes(script, notes Script) Script {
	return func(r Request) Reply {
		if AsksForNotes(r) {
			return notes(r)
		}
		return script(r)
	}
}
