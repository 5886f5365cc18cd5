package tokens_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus holds texts of the kinds that sessions are made of, some 100 KB each.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	code, english := sourceCode(t)
	return map[string]string{
		"code":    code,
		"english": english,
		"json":    jsonText(t),
		"cjk":     shuffled(cjkSentences(), 100_000),
		"base64":  base64Text(),
	}
}

// sourceCode returns Go files of this repository, and their comments, which are English.
func sourceCode(t testing.TB) (code, english string) {
	t.Helper()
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var whole, comments strings.Builder
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if whole.Len() < 150_000 {
			whole.Write(content)
		}
		var source scanner.Scanner
		source.Init(token.NewFileSet().AddFile(name, -1, len(content)), content, nil, scanner.ScanComments)
		for {
			_, kind, text := source.Scan()
			if kind == token.EOF {
				break
			}
			if kind == token.COMMENT {
				comments.WriteString(strings.TrimSpace(strings.Trim(text, "/*")) + " ")
			}
		}
	}
	return whole.String(), comments.String()
}

func jsonText(t testing.TB) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("status pending error retry cache user session region latency timeout owner path /var/log/app.log main.go feature-flag")
	var lines strings.Builder
	for lines.Len() < 100_000 {
		entry := map[string]any{
			"id":      fmt.Sprintf("%016x", random.Uint64()),
			"at":      fmt.Sprintf("2026-11-%02dT%02d:%02d:%02d.%03dZ", 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1000)),
			"kind":    words[random.IntN(len(words))],
			"value":   random.Float64() * 1000,
			"tags":    []string{words[random.IntN(len(words))], words[random.IntN(len(words))]},
			"nested":  map[string]any{"ok": random.IntN(2) == 0, "count": random.IntN(1e6), "text": "line one\n\tline \"two\""},
			"nothing": nil,
		}
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	return lines.String()
}

func base64Text() string {
	random := rand.NewChaCha8([32]byte{7})
	content := make([]byte, 75_000)
	_, _ = random.Read(content)
	return base64.StdEncoding.EncodeToString(content)
}

func shuffled(sentences []string, length int) string {
	random := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for text.Len() < length {
		text.WriteString(sentences[random.IntN(len(sentences))])
	}
	return text.String()
}

func cjkSentences() []string {
	return []string{
		"会话越长,早先的内容就越需要压缩,但原文必须逐字节保存在档案中。", "代理服务器在转发请求之前先确认归档已经写入。",
		"如果上游返回错误,客户端应当收到完全相同的错误信息。", "我们昨天修改了数据库迁移脚本,今天需要重新运行测试。\n",
		"请检查一下这个函数为什么会返回空指针,顺便看看日志里有没有别的线索。", "每个租户的数据都由行级安全策略隔离。",
		"セッションが長くなると、古いやり取りは短い形に置き換えられます。", "元のメッセージは一字一句そのまま保存されます。\n",
		"この関数がどうして失敗するのか、テストを追加して確かめてください。", "昨日のビルドは成功しましたが、今日は型エラーが出ています。",
		"대화가 길어질수록 앞부분은 더 짧은 형태로 바뀝니다. ", "원본 메시지는 보관소에 그대로 남아 있습니다.\n",
		"이 함수가 왜 빈 값을 돌려주는지 로그를 확인해 주세요. ", "トークン数の見積もりは、報告された使用量で補正されます。",
		"第三季度的营收同比增长百分之十二,主要来自华东地区的新客户。", "価格は百万トークンあたり3ドルで、キャッシュの読み取りは0.3ドルです。",
	}
}

// oddities are texts at which tokenizers differ.
func oddities() []string {
	return []string{
		"", " ", "  ", "\n", "\n\n", " \n", "\n ", "\n    \n", "a\n    \n\tb", "\r\n\r\n", "x\r\n  y", "\t\t\tx", "   x", "x   ", "x \t \n y",
		"\u00a0x", "\u3000全角", "a\u2028b", "a\u0085b", "a\u200bb", "\ufeffx",
		"it's IT'S I'll we've they're she'd I'm o'clock 'tis x'y don't't", "'s 'S ' s", "'", "''", "a'", "'a",
		"camelCase HTTPServer XMLHttpRequest iPhone ABC ABCd aBC a1b2 A1 1a 1234567 12 3.14 1,000,000 ١٢٣٤ ²³ Ⅷ",
		"été Été ÉTÉ naïve ﬁne ǅ ǅabc ʰa Aʰ ªA Aª ªAB ñandú İstanbul straße ΑΒΓ αβγ Привет мир ПРИВЕТ",
		"e\u0301 \u0301 \u0301abc \u0301ABC 1\u0301ABC \u0301\u0301 A\u0301B \n\u0301A .\u0301A \u0301's \u0301 's",
		"नमस्ते दुनिया สวัสดีชาวโลก שלום עולם مرحبا بالعالم", "한국어 텍스트입니다", "日本語のテキスト。カタカナ", "漢字かな交じり文ABC混在123",
		"👍 👍🏽 👨‍👩‍👧‍👦 ❤️ 🇩🇪 ☕️x ✅done 🎉🎉🎉 a👍b 1️⃣", "\U0001F9D1\u200d\U0001F4BB codes", "𝒳𝓎𝓏 𐍈 𠀀𠀁 🀄",
		"// comment\n/* a */ x := y[1:2]; if (a!=b) { return }\n\t}\n", "https://example.com/a/b?c=d&e=f#g", "a//b///c////\n/", "!!!\n\n???/\r\n//x",
		"<|endoftext|> <|im_start|>system", "{\"a\":{\"b\":[1,2,{\"c\":null}]}}", "}}}}]]]\n\n  \"", "====\n----\n____ ....", "$$$ €€ ££ ¥100",
		"Zm9vYmFyYmF6cXV4+/==", "deadbeefDEADBEEF0123", "sk-ant-api03-AbC_dEf-GhI", "\x00\x01\x7f", "\x1c\x1d a\x1cb",
		strings.Repeat(" ", 300), strings.Repeat("\t", 90) + "x", strings.Repeat("\n", 50), strings.Repeat("=", 500), strings.Repeat("ab", 400), strings.Repeat("的", 300),
	}
}
