package apiclients

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"palimpsest/api/upstream/providerdouble"
)

// The model's actions in the cases of this file.
const (
	largeWindowSize = 100_000

	writes    = 60    // files to write
	writeSize = 8_000 // bytes of each

	smallRounds = 45    // answers with several small calls
	smallCalls  = 4     // in each answer
	smallSize   = 1_500 // output bytes of each call

	toolRounds = 240 // calls of all tools in turn
)

// Cases that tests name.
const (
	writesCase     = "60 writes of 8 KB in 100k"
	smallCallsCase = "45 × 4 small calls in 60k"
)

// toolCases are those in which Claude Code uses more than its shell, on every model.
func toolCases() []Case {
	work := func(name string, window, rounds int, play func(*model, int) providerdouble.Reply) Case {
		return Case{
			Name: name, window: window, rounds: rounds, only: claudeCodePackage, says: says("Do the work, and then read the note."),
			play: thenNote(rounds, play), judge: wentPastTheWindowAtAProfit,
		}
	}
	cases := []Case{
		work(writesCase, largeWindowSize, writes, writePart),
		work(smallCallsCase, windowSize, smallRounds, readSlices),
	}
	for _, window := range []int{windowSize, largeWindowSize} {
		one := work(fmt.Sprintf("every tool, 240 steps in %dk", window/1000), window, toolRounds, everyTool)
		one.tools, one.judge = true, usedEveryTool
		cases = append(cases, one)
	}

	return cases
}

// The inputs of Claude Code's tools for files and plans.
type (
	readInput struct {
		Path string `json:"file_path"`
	}
	writeInput struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
	}
	editInput struct {
		Path string `json:"file_path"`
		Old  string `json:"old_string"`
		New  string `json:"new_string"`
	}
	grepInput struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Mode    string `json:"output_mode"`
		Limit   int    `json:"head_limit"`
	}
	globInput struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}
	todoInput struct {
		Todos []todo `json:"todos"`
	}
	todo struct {
		Content string `json:"content"`
		Active  string `json:"activeForm"`
		Status  string `json:"status"`
	}
)

// writePart writes a file.
func writePart(m *model, round int) providerdouble.Reply {
	return providerdouble.Reply{Text: fmt.Sprintf("Now file %d.", round), Calls: []providerdouble.Call{
		call("Write", writeInput{Path: m.inWork(fmt.Sprintf("out/written-%02d.txt", round)), Content: numberedText(round, writeSize)}),
	}}
}

// readSlices reads several small pieces of the parts at once, without repeating one.
func readSlices(m *model, round int) providerdouble.Reply {
	const inPart = partSize / smallSize
	reply := providerdouble.Reply{Text: fmt.Sprintf("Now pieces %d to %d.", (round-1)*smallCalls+1, round*smallCalls)}
	for piece := (round - 1) * smallCalls; piece < round*smallCalls; piece++ {
		line := fmt.Sprintf("tail -c +%d %s | head -c %d", piece%inPart*smallSize+1, partFile(piece/inPart+1), smallSize)
		reply.Calls = append(reply.Calls, m.client.shell(line))
	}

	return reply
}

// everyTool calls one tool after the other, each time with different arguments.
func everyTool(m *model, round int) providerdouble.Reply {
	const tools = 8
	turn, part := (round-1)/tools+1, partFile((round-1)/tools+1)
	notes := m.inWork(fmt.Sprintf("out/notes-%02d.txt", turn))
	calls := [tools]func() providerdouble.Call{
		func() providerdouble.Call { return call("Read", readInput{m.inWork(part)}) },
		func() providerdouble.Call {
			return call("Write", writeInput{Path: notes, Content: fmt.Sprintf("Draft %d.\n", turn) + numberedText(turn, writeSize/2)})
		},
		func() providerdouble.Call {
			return call("Edit", editInput{Path: notes, Old: fmt.Sprintf("Draft %d.", turn), New: fmt.Sprintf("Done %d.", turn)})
		},
		func() providerdouble.Call { return m.client.shell(fmt.Sprintf("tac %s | head -c 6000", part)) },
		func() providerdouble.Call {
			return call("Grep", grepInput{Pattern: fmt.Sprintf("line %d:", turn), Path: m.inWork("."), Mode: "content", Limit: 20})
		},
		func() providerdouble.Call {
			return call("Glob", globInput{Pattern: fmt.Sprintf("**/*%02d*.txt", turn), Path: m.inWork(".")})
		},
		func() providerdouble.Call {
			return call("TodoWrite", todoInput{[]todo{
				{fmt.Sprintf("Read part %d", turn), fmt.Sprintf("Reading part %d", turn), "completed"},
				{fmt.Sprintf("Read part %d", turn+1), fmt.Sprintf("Reading part %d", turn+1), "in_progress"},
			}})
		},
		func() providerdouble.Call {
			return m.client.errand(fmt.Sprintf("%s %d: read %s and report the word.", errandMark, turn, noteFile))
		},
	}

	return providerdouble.Reply{Text: fmt.Sprintf("Now step %d.", round), Calls: []providerdouble.Call{calls[(round-1)%tools]()}}
}

// inWork returns the path of a file in the client's project.
func (m *model) inWork(name string) string { return filepath.Join(m.work, name) }

// usedEveryTool requires that a session with every tool exceeds its window, and that every call succeeds.
func usedEveryTool(t *Trial) (string, error) {
	remark, err := wentPastTheWindowAtAProfit(t)
	if err != nil {
		return remark, err
	}
	used, failed := map[string]bool{}, 0
	for _, exchange := range t.Exchanges {
		body, _ := members(exchange.Body)
		for _, message := range objects(body["messages"]) {
			for _, block := range objects(message["content"]) {
				used[text(block["name"])] = true
				if string(block["is_error"]) == "true" {
					failed++
				}
			}
		}
	}
	for tool := range strings.SplitSeq(everyTools, ",") {
		if !used[tool] {
			err = errors.Join(err, fmt.Errorf("%s was not called", tool))
		}
	}
	if failed > 0 {
		err = errors.Join(err, errors.New("calls failed in the client"))
	}

	return remark, err
}
