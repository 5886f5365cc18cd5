package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// MaxError is how many bytes of a provider's error are read to understand it.
const MaxError = 64 << 10

// Overflow is a provider's word that a prompt is too long. What it does not say
// is 0.
type Overflow struct {
	Tokens   int // of the prompt, as the provider counted them
	Reserved int // for the answer, where the provider counts them too
	Window   int // the model's context window
}

// Limit returns how many tokens the prompt may have; 0 if the provider does not say.
func (o Overflow) Limit() int { return max(0, o.Window-o.Reserved) }

// numbersIn returns the numbers of a message that reads like pattern, in which #
// stands for a number and what surrounds it is the same in every message. ok is
// false if it reads otherwise. Text before and behind the pattern is left aside.
func numbersIn(message, pattern string) (numbers []int, ok bool) {
	parts := strings.Split(pattern, "#")
	_, rest, ok := strings.Cut(message, parts[0])
	for _, part := range parts[1:] {
		if !ok {
			return nil, false
		}
		end := 0
		for end < len(rest) && rest[end]-'0' <= 9 {
			end++
		}
		number, err := strconv.Atoi(rest[:end])
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, number)
		rest, ok = strings.CutPrefix(rest[end:], part)
	}
	return numbers, ok
}

// AnthropicOverflow reads an error of Anthropic's API; ok is false if it tells of
// anything else than a prompt that is too long.
func AnthropicOverflow(status int, body json.RawMessage) (said Overflow, ok bool) {
	message := Text(Get(body, "error"), "message")
	if status != http.StatusBadRequest {
		return Overflow{}, false
	}
	if numbers, is := numbersIn(message, "prompt is too long: # tokens > # maximum"); is {
		return Overflow{Tokens: numbers[0], Window: numbers[1]}, true
	}
	if numbers, is := numbersIn(message, "input length and `max_tokens` exceed context limit: # + # > #"); is {
		return Overflow{Tokens: numbers[0], Reserved: numbers[1], Window: numbers[2]}, true
	}
	for _, words := range []string{"prompt is too long", "input is too long for requested model"} {
		if strings.HasPrefix(strings.ToLower(message), words) {
			return Overflow{}, true
		}
	}
	return Overflow{}, false
}

// OpenAIOverflow reads an error of OpenAI's APIs; ok is false if it tells of
// anything else than a prompt that is too long. Compatible providers say the same
// words without the code.
func OpenAIOverflow(status int, body json.RawMessage) (said Overflow, ok bool) {
	problem := Get(body, "error")
	if status != http.StatusBadRequest || problem == nil {
		return Overflow{}, false
	}
	message := Text(problem, "message")
	if numbers, is := numbersIn(message, "maximum context length is # tokens"); is {
		said.Window = numbers[0]
		if numbers, is := numbersIn(message, "resulted in # tokens"); is {
			said.Tokens = numbers[0]
		} else if numbers, is := numbersIn(message, "(# in the messages, # in the completion)"); is {
			said.Tokens, said.Reserved = numbers[0], numbers[1]
		}
		return said, true
	}
	return Overflow{}, Text(problem, "code") == "context_length_exceeded" || strings.HasPrefix(message, "Your input exceeds the context window")
}
