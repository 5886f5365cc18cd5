package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// setting is one value of a config: how it is read and what it may be.
type setting struct {
	path  string
	read  func(*Config, *yaml.Node) error
	write func(*Config) (*yaml.Node, error)
	check func(*Config) string // the value and what is allowed; empty: fine
}

// field returns the setting of the field that at points to.
func field[T any](path string, at func(*Config) *T, check func(T) string) setting {
	return setting{
		path: path,
		read: func(config *Config, node *yaml.Node) error {
			var value T
			if err := node.Decode(&value); err != nil {
				return err
			}
			switch any(value).(type) {
			case int, Window, []int: // the decoder would cut fractions off
				if number, has := fraction(node); has {
					return fmt.Errorf("%q must be a whole number", number)
				}
			}
			*at(config) = value
			return nil
		},
		write: func(config *Config) (*yaml.Node, error) {
			var node yaml.Node
			if err := node.Encode(*at(config)); err != nil {
				return nil, fmt.Errorf("write %s: %w", path, err)
			}
			if node.Kind != yaml.ScalarNode {
				node.Style = yaml.FlowStyle
			}
			return &node, nil
		},
		check: func(config *Config) string { return check(*at(config)) },
	}
}

// fraction returns the first number in a node that is not whole.
func fraction(node *yaml.Node) (number string, has bool) {
	for _, element := range node.Content {
		if number, has := fraction(element); has {
			return number, true
		}
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!float" {
		return "", false
	}
	value, err := strconv.ParseFloat(node.Value, 64)
	return node.Value, err != nil || value != math.Trunc(value)
}

// settings are all values of a config in the order in which they are written.
func settings() []setting {
	return slices.Concat(
		[]setting{field("modules", func(c *Config) *moduleList { return (*moduleList)(&c.Modules) }, func(names moduleList) string { return checkModules(names) })},
		ipcSettings(), bridgeSettings(), rehydratorSettings(), patternsSettings(), cacheSettings(),
	)
}

func ipcSettings() []setting {
	return []setting{
		field("ipc.targetUtilization", func(c *Config) *float64 { return &c.IPC.TargetUtilization }, share(0.30, 0.95)),
		field("ipc.compressTo", func(c *Config) *float64 { return &c.IPC.CompressTo }, share(0.10, 0.90)),
		field("ipc.minClear", func(c *Config) *float64 { return &c.IPC.MinClear }, share(0.01, 0.50)),
		field("ipc.preserveLastTurns", func(c *Config) *int { return &c.IPC.PreserveLastTurns }, count(1, 100)),
		field("ipc.preserveTokens", func(c *Config) *int { return &c.IPC.PreserveTokens }, count(0, 1_000_000)),
		field("ipc.preserveSystem", func(c *Config) *bool { return &c.IPC.PreserveSystem }, fine[bool]),
		field("ipc.archiveToBlob", func(c *Config) *bool { return &c.IPC.ArchiveToBlob }, fine[bool]),
		field("ipc.deepestLevel", func(c *Config) *int { return &c.IPC.DeepestLevel }, count(0, 3)),
		field("ipc.blockTokens", func(c *Config) *int { return &c.IPC.BlockTokens }, count(500, 100_000)),
		field("ipc.observationMasking", func(c *Config) *bool { return &c.IPC.ObservationMasking }, fine[bool]),
		field("ipc.llmCompression", func(c *Config) *LLMCompression { return &c.IPC.LLMCompression }, checkLLM),
		field("ipc.idleUtilization", func(c *Config) *float64 { return &c.IPC.IdleUtilization }, share(0.10, 0.95)),
		field("ipc.contextWindow", func(c *Config) *Window { return &c.IPC.ContextWindow }, checkWindow),
		field("ipc.keepLastLadder", func(c *Config) *[]int { return &c.IPC.KeepLastLadder }, checkLadder),
		field("ipc.maxBytes", func(c *Config) *int { return &c.IPC.MaxBytes }, checkBytes),
		field("ipc.warnAfterEpochs", func(c *Config) *int { return &c.IPC.WarnAfterEpochs }, count(0, 1000)),
	}
}

func bridgeSettings() []setting {
	const at = "compaction-bridge."
	return []setting{
		field(at+"preserveLastTurns", func(c *Config) *int { return &c.Bridge.PreserveLastTurns }, count(0, 100)),
		field(at+"preserveActiveFiles", func(c *Config) *bool { return &c.Bridge.PreserveActiveFiles }, fine[bool]),
		field(at+"preserveDirectives", func(c *Config) *bool { return &c.Bridge.PreserveDirectives }, fine[bool]),
		field(at+"detectionThreshold", func(c *Config) *float64 { return &c.Bridge.DetectionThreshold }, share(0, 1)),
		field(at+"blobPrefix", func(c *Config) *string { return &c.Bridge.BlobPrefix }, checkPrefix),
		field(at+"maxTokens", func(c *Config) *int { return &c.Bridge.MaxTokens }, count(0, 100_000)),
		field(at+"placement", func(c *Config) *string { return &c.Bridge.Placement }, choice("turn", "system")),
	}
}

func rehydratorSettings() []setting {
	const at = "rehydrator."
	return []setting{
		field(at+"triggerPhrases", func(c *Config) *[]string { return &c.Rehydrator.TriggerPhrases }, checkPhrases),
		field(at+"maxRehydrated", func(c *Config) *int { return &c.Rehydrator.MaxRehydrated }, count(0, 100)),
		field(at+"searchDepthDays", func(c *Config) *int { return &c.Rehydrator.SearchDepthDays }, count(1, 3650)),
		field(at+"similarityThreshold", func(c *Config) *float64 { return &c.Rehydrator.SimilarityThreshold }, share(0, 1)),
		field(at+"maxTokens", func(c *Config) *int { return &c.Rehydrator.MaxTokens }, count(0, 100_000)),
		field(at+"scope", func(c *Config) *string { return &c.Rehydrator.Scope }, choice("session", "key", "workspace")),
		field(at+"placement", func(c *Config) *string { return &c.Rehydrator.Placement }, choice("turn", "system")),
		field(at+"embeddingModel", func(c *Config) *string { return &c.Rehydrator.EmbeddingModel }, fine[string]),
	}
}

func patternsSettings() []setting {
	const at = "patterns."
	return []setting{
		field(at+"maxInjected", func(c *Config) *int { return &c.Patterns.MaxInjected }, count(0, 100)),
		field(at+"minSuccessRate", func(c *Config) *float64 { return &c.Patterns.MinSuccessRate }, share(0, 1)),
		field(at+"review", func(c *Config) *string { return &c.Patterns.Review }, choice("required", "auto")),
		field(at+"placement", func(c *Config) *string { return &c.Patterns.Placement }, choice("turn", "system")),
	}
}

func cacheSettings() []setting {
	const at = "semantic-cache."
	return []setting{
		field(at+"similarity", func(c *Config) *float64 { return &c.SemanticCache.Similarity }, share(0, 1)),
		field(at+"ttlSeconds", func(c *Config) *int { return &c.SemanticCache.TTLSeconds }, count(1, 31_536_000)),
		field(at+"embeddingModel", func(c *Config) *string { return &c.SemanticCache.EmbeddingModel }, fine[string]),
		field(at+"scope", func(c *Config) *string { return &c.SemanticCache.Scope }, choice("session", "key", "workspace")),
	}
}

// moduleList is a list of modules, written as a list or separated by commas.
type moduleList []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *moduleList) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]string)(m))
	}
	names, err := ParseModules(node.Value)
	if invalid, is := errors.AsType[Invalid](err); is {
		return errors.New(invalid.Message)
	}
	*m = names
	return nil
}

func checkModules(names []string) string {
	for i, name := range names {
		if !slices.Contains(Modules(), name) {
			return fmt.Sprintf("%q is no module; known are %s, and none for no module", name, strings.Join(Modules(), ", "))
		}
		if slices.Contains(names[:i], name) {
			return name + " is named twice; a module runs once"
		}
	}
	return ""
}

func fine[T any](T) string { return "" }

func share(lowest, highest float64) func(float64) string {
	return func(value float64) string {
		if value >= lowest && value <= highest { // false for NaN
			return ""
		}
		return fmt.Sprintf("%v is out of range; allowed is %.2f to %.2f", value, lowest, highest)
	}
}

func count(lowest, highest int) func(int) string {
	return func(value int) string {
		if value >= lowest && value <= highest {
			return ""
		}
		return fmt.Sprintf("%d is out of range; allowed is %d to %d", value, lowest, highest)
	}
}

func choice(options ...string) func(string) string {
	return func(value string) string {
		if slices.Contains(options, value) {
			return ""
		}
		return fmt.Sprintf("%q is not allowed; choose one of %s", value, strings.Join(options, ", "))
	}
}

func checkWindow(window Window) string {
	const lowest, highest = 1_000, 100_000_000
	if window == 0 || window >= lowest && window <= highest {
		return ""
	}
	return fmt.Sprintf("%d is out of range; allowed is auto or %d to %d", window, lowest, highest)
}

func checkBytes(bytes int) string {
	const lowest, highest = 100_000, 1_000_000_000
	if bytes == 0 || bytes >= lowest && bytes <= highest {
		return ""
	}
	return fmt.Sprintf("%d is out of range; allowed is 0 for no limit, or %d to %d", bytes, lowest, highest)
}

func checkLadder(ladder []int) string {
	const allowed = "allowed are 1 to 20 falling numbers from 100 to 1"
	if len(ladder) == 0 || len(ladder) > 20 {
		return fmt.Sprintf("%d numbers are out of range; %s", len(ladder), allowed)
	}
	for i, turns := range ladder {
		if turns < 1 || turns > 100 || i > 0 && turns >= ladder[i-1] {
			return fmt.Sprintf("%d at place %d is out of order or range; %s", turns, i+1, allowed)
		}
	}
	return ""
}

// maxPrompt bounds a workspace's own prompt for summaries, in bytes.
const maxPrompt = 20_000

func checkLLM(llm LLMCompression) string {
	switch {
	case llm == LLMCompression{}:
		return ""
	case llm.Model == "":
		return "names no model; write {model: …} or false"
	case llm.MaxTokens < 0 || llm.MaxTokens > 100_000:
		return "maxTokens " + strconv.Itoa(llm.MaxTokens) + " is out of range; allowed is 0 to 100000"
	case llm.Timeout < 0 || llm.Timeout > 10*time.Minute:
		return "timeout " + llm.Timeout.String() + " is out of range; allowed is 0s to 10m"
	case llm.ReserveTokens < 0 || llm.ReserveTokens > 1_000_000:
		return "reserveTokens " + strconv.Itoa(llm.ReserveTokens) + " is out of range; allowed is 0 to 1000000"
	case llm.KeepRecentTokens < 0 || llm.KeepRecentTokens > 1_000_000:
		return "keepRecentTokens " + strconv.Itoa(llm.KeepRecentTokens) + " is out of range; allowed is 0 to 1000000"
	case len(llm.Prompt) > maxPrompt:
		return fmt.Sprintf("prompt of %d bytes is too long; allowed are %d", len(llm.Prompt), maxPrompt)
	default:
		return ""
	}
}

func checkPrefix(prefix string) string {
	if len(prefix) > 200 || strings.Contains(prefix, "..") || strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, "\\\x00") {
		return fmt.Sprintf("%q is no prefix; allowed are up to 200 bytes without a leading slash, .. or backslash", prefix)
	}
	return ""
}

func checkPhrases(phrases []string) string {
	if len(phrases) > 100 {
		return fmt.Sprintf("%d phrases are out of range; allowed are 0 to 100", len(phrases))
	}
	for i, phrase := range phrases {
		if strings.TrimSpace(phrase) == "" || len(phrase) > 200 {
			return fmt.Sprintf("phrase %d is empty or longer than 200 bytes", i+1)
		}
	}
	return ""
}
