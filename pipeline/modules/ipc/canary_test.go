package ipc_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"palimpsest/pipeline/fulltest"
)

// canary is something that was said early in a session and is needed much later.
type canary struct {
	kind, text string
	message    int // that has it
}

// plant says five things that must not be lost, numbered, and returns them.
func plant(c *talk, number int) []canary {
	var planted []canary
	note := func(kind, text string) {
		planted = append(planted, canary{kind, text, len(c.messages)})
	}
	order := fmt.Sprintf("From now on, start the name of each branch in area %d with KX-%d.", number, 4100+number)
	note("order", order)
	c.user("Let us go on with the queue. " + order)
	decision := fmt.Sprintf("We'll use BoltDB for store %d because SQLite locks the whole file.", number)
	note("decision", decision)
	c.say(decision + " I go on.")
	c.user("Good.")
	note("failed attempt", fmt.Sprintf("I tried a longer timeout for worker %d, but that didn't work because its pool is exhausted.", number))
	c.say(planted[len(planted)-1].text + " Next I look at the pool.")
	c.user("Go on, please.")
	file := fmt.Sprintf("/srv/app/internal/quota/limits_%d.go", number)
	note("path", fmt.Sprintf("internal/quota/limits_%d.go", number))
	c.tool("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, file), "Updated.")
	value := strconv.Itoa(48_200 + number)
	c.run(fmt.Sprintf("./serve %d", number), "The server listens on port "+value+".\n"+words(100))
	note("value", value)
	c.run("curl -s localhost:"+value+"/health", "ok")
	c.run("curl -s localhost:"+value+"/ready", "ok")
	return planted
}

// Five kinds of things, said early, are in the prompt or one recall away after ten compactions.
func TestCanariesSurviveTenCompactions(t *testing.T) {
	t.Parallel()
	const compactions, numbers = 10, 4
	windows := []int{16_000, 64_000, 200_000}
	for i := range fulltest.Part(len(windows)) {
		window := windows[i]
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			t.Parallel()
			lane, c := newLane(t, window, byDefault), (&talk{})
			var all []canary
			var sealed []byte
			for round := 0; lane.Epochs < compactions; round++ {
				if round < numbers {
					all = append(all, plant(c, round)...)
				}
				for step := range 6 {
					c.say("I look at the next part.").user("Yes.").run(fmt.Sprintf("cat part%d-%d.txt", round, step), words(window/9))
				}
				if round > 3*compactions {
					t.Fatalf("%d compactions after %d rounds", lane.Epochs, round)
				}
				_, sealed = send(t, lane, c.body())
			}
			inPrompt := 0
			for _, canary := range all {
				switch {
				case bytes.Contains(sealed, []byte(canary.text)):
					inPrompt++
				case pointsAt(sealed, canary.message):
					t.Logf("one recall away: %s %q", canary.kind, canary.text)
				default:
					t.Errorf("%s %q is lost", canary.kind, canary.text)
				}
			}
			if share := float64(inPrompt) / float64(len(all)); window >= 64_000 && share < 0.95 {
				t.Errorf("%d of %d are in the prompt", inPrompt, len(all))
			}
		})
	}
}

var pointer = regexp.MustCompile(`#(\d+)(?:–#(\d+))?`)

// pointsAt reports whether a prompt has the number of a message.
func pointsAt(prompt []byte, message int) bool {
	for _, found := range pointer.FindAllSubmatch(prompt, -1) {
		from, _ := strconv.Atoi(string(found[1]))
		to, err := strconv.Atoi(string(found[2]))
		if err != nil {
			to = from
		}
		if from <= message && message <= to {
			return true
		}
	}
	return false
}
