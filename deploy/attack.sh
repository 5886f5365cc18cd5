#!/bin/sh
# Tries from outside what docs/security.md says is shut: paths that go around the pipeline or
# leave the base path, methods and answers that would give the stored provider key away.
#
#   deploy/attack.sh http://127.0.0.1:8080 plm_live_…
#
# The key needs the scope proxy, in a workspace with a provider key. Where the provider
# echoes requests, set STORED to the stored key and the script looks for it in the answers.
set -eu

base=${1:?address of the proxy, such as http://127.0.0.1:8080}
key=${2:?an API key with the scope proxy}
body='{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'
open=0

# ask METHOD PATH [STATUS…]: the status must be one of these.
ask() {
  method=$1 path=$2
  shift 2
  answer=$(curl --silent --path-as-is --globoff --max-time 60 --request "$method" --data "$body" \
    --header "x-api-key: $key" --header 'content-type: application/json' --dump-header - \
    --write-out '\n%{http_code}' "$base$path") || answer='
000'
  status=$(printf '%s' "$answer" | tail -n 1)
  verdict=OPEN
  for allowed in "$@"; do
    if [ "$status" = "$allowed" ]; then verdict=shut; fi
  done
  if [ -n "${STORED:-}" ] && printf '%s' "$answer" | grep -qF "$STORED"; then verdict='OPEN, shows the stored key'; fi
  if [ "$verdict" != shut ]; then open=$((open + 1)); fi
  printf '%-28s %-8s %-4s %s\n' "$verdict" "$method" "$status" "$path"
}

echo '# an encoded path walks around the pipeline'
for path in '/v1/%6dessages' '/v1/m%65ssages' '/v1/%256dessages' '/v1/Messages' '/v1/messages;a=b' '/v1/messages%3Ba' \
  '/v1/messages%20' '/v1/messages%3Fa' '/v1/messages%2F' '/v1/%2Fmessages' '/v1/chat%2Fcompletions' '/v1/%72esponses' \
  '/anthropic/v1/%6dessages' '/openai/v1/%72esponses' '/v1/messages%00' '/v1/%EF%BD%8Dessages'; do
  ask POST "$path" 400
done

echo '# a path leaves the base path'
for path in '/v1/../../admin' '/v1/../admin' '/v1/./admin' '/v1/%2e%2e/%2e%2e/admin' '/v1/%2E%2E/admin' '/v1/.%2e/admin' \
  '/v1/..%2fadmin' '/v1/..%5cadmin' '/v1/..\..\admin' '/v1/%2e%2e%5cadmin' '/v1/..;/admin' '/v1/..%3b/admin' \
  '/v1/%252e%252e/admin' '/v1/..%252fadmin' '/v1/%c0%ae%c0%ae/admin' '/v1/..%20/admin' '/anthropic/v1/../admin'; do
  ask GET "$path" 400
done

echo '# other methods are relayed'
for method in TRACE TRACK OPTIONS PROPFIND CONNECT; do
  ask "$method" /v1/files 405 400
done

if [ -n "${STORED:-}" ]; then
  echo '# answers give the stored key back'
  for path in /v1/files /v1/models /v1/embeddings /v1/echo; do
    ask POST "$path" 200 400 404
    ask GET "$path" 200 400 404
  done
fi

if [ "$open" -gt 0 ]; then
  echo "$open open"
  exit 1
fi
echo 'all shut'
