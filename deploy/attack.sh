#!/bin/sh
# Tries from outside what docs/security.md says is shut: a member or a key that makes itself a
# stronger key, paths that go around the pipeline or leave the base path, methods and answers
# that would give the stored provider key away, base URLs of the program itself, names and addresses
# that are not one line, streams that outlive their key, changed backups, words of one end user that
# reach another, budgets that are passed, sign-ups and workspaces in numbers, floods.
#
#   MEMBER=palimpsest=… deploy/attack.sh http://127.0.0.1:8080 plm_live_…
#
# The key needs the scope proxy alone, in a workspace with a provider key for Anthropic. MEMBER
# is the cookie, name=value, of a login with the role member in the same workspace, whose members read
# their own sessions only, and of someone else than the key's owner; without it the key alone tries to
# make keys. If the provider echoes requests, set STORED to the stored key,
# and the script looks for it in the answers.
#
# ADMIN is the admin address, such as http://127.0.0.1:9090, if the script may try to read it by way
# of the proxy. BACKUP is the directory of a backup and PALIMPSEST the program, with the master key
# in PALIMPSEST_SECRET_KEY: changed copies of the backup must be refused.
#
# SIGNUPS=1 lets the script sign up people at attack-….example.com until it is refused, and the first of them
# create workspaces; their workspaces are deleted at the end, and the accounts with them. QUIET is an
# API key of another account and FLOOD the program of cmd/tools/flood: it floods with the first key, and
# measures what QUIET notices.
#
# Exit code: 0 if everything is shut, 1 if something is open, 2 if what must work does not, so
# that nothing was shown. Keys that the script makes are revoked.
set -eu

base=${1:?address of the proxy, such as http://127.0.0.1:8080}
key=${2:?an API key with the scope proxy}
body='{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'
open=0

# send METHOD PATH BODY CREDENTIAL [BASE]: sets answer, with headers, and status. BASE is a base URL
# that the request names itself.
send() {
  answer=$(curl --silent --path-as-is --globoff --max-time 60 --request "$1" --data "$3" \
    ${5:+--header "x-palimpsest-provider-key: attack" --header "x-palimpsest-base-url: $5"} --header "$4" --header 'content-type: application/json' --header 'anthropic-version: 2023-06-01' --dump-header - \
    --write-out '\n%{http_code}' "$base$2") || answer='
000'
  status=$(printf '%s' "$answer" | tail -n 1)
}

# works METHOD PATH BODY CREDENTIAL STATUS: without this the rest would show nothing.
works() {
  send "$1" "$2" "$3" "$4"
  if [ "$status" != "$5" ]; then
    printf '%s %s must answer %s, and answers %s: %s\n' "$1" "$2" "$5" "$status" "$answer" >&2
    exit 2
  fi
}

# ask METHOD PATH [STATUS…]: the status must be one of these.
ask() {
  method=$1 path=$2
  shift 2
  send "$method" "$path" "$body" "x-api-key: $key"
  judge "$method" "$path" "$@"
}

# judge WHAT DETAIL [STATUS…]: prints and counts what became of the last request.
judge() {
  method=$1 path=$2
  shift 2
  verdict=OPEN
  for allowed in "$@"; do
    if [ "$status" = "$allowed" ]; then verdict=shut; fi
  done
  if [ -n "${STORED:-}" ] && printf '%s' "$answer" | grep -qF "$STORED"; then verdict='OPEN, shows the stored key'; fi
  if [ "$verdict" != shut ]; then open=$((open + 1)); fi
  printf '%-28s %-8s %-4s %s\n' "$verdict" "$method" "$status" "$path"
}

works POST /v1/messages "$body" "x-api-key: $key" 200

# mint WHO CREDENTIAL: no body makes a key that may do more than the one who sends it.
mint() {
  for scopes in '["manage"]' '["proxy","manage"]' '["proxy,manage"]' '[" manage"]' '["manage "]' '["manage,"]' '["Manage"]' \
    '["man\u0061ge"]' '["\tmanage"]' '["manage\u0000"]' '["proxy\nmanage"]' '["*"]' '["admin"]' '["proxy",""]' '[["manage"]]' \
    '"manage"' '{"manage":true}' '1' '["read"],"scopes":["manage"]' '["manage"],"scopes":["read"]' '["read"],"Scopes":["manage"]' \
    '["read"],"SCOPES":["proxy,manage"]' '["read"],"\u0073copes":["manage"]' '["read"],"role":"admin"' '["read"],"created_by":"owner"'; do
    send POST /api/v1/keys "{\"name\":\"attack\",\"scopes\":$scopes}" "$2"
    judge POST "/api/v1/keys as $1 with $scopes" 400 403 422
  done
}

echo '# a key with the scope proxy makes a stronger one'
mint 'the key' "x-api-key: $key"

if [ -n "${MEMBER:-}" ]; then
  echo '# a member makes a key that manages'
  works POST /api/v1/keys '{"name":"attack","scopes":["read"]}' "cookie: $MEMBER" 201
  made=$(printf '%s' "$answer" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  secret=$(printf '%s' "$answer" | sed -n 's/.*"secret":"\([^"]*\)".*/\1/p')
  mint 'a member' "cookie: $MEMBER"
  mint "a member's key" "x-api-key: $secret"
  for scopes in '["manage"]' '["proxy,manage"]' '[" manage"]'; do
    send PATCH "/api/v1/keys/$made" "{\"scopes\":$scopes}" "cookie: $MEMBER"
    judge PATCH "/api/v1/keys/… with $scopes" 400 403 422
  done
  send GET /api/v1/members '' "x-api-key: $secret"
  judge GET "/api/v1/members as a member's key" 403
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204
fi

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

echo '# a base URL leads to the program itself, or to link-local addresses'
port=${base##*:}
for at in "$base" "$base/metrics#" "$base#" "http://localhost:$port" "http://[::1]:$port" "http://0.0.0.0:$port" 'http://169.254.169.254/latest#' \
  'http://169.254.169.254' 'http://[fe80::1]' 'http://[::ffff:169.254.169.254]' 'http://attack@example.com' 'https://example.com/#x' \
  ${ADMIN:+"$ADMIN" "$ADMIN/metrics#" "$ADMIN/metrics?x=#"}; do
  send POST /v1/messages "$body" "x-api-key: $key" "$at"
  judge POST "/v1/messages with the base URL $at" 400 403
done

echo '# names of more than one line, and addresses that no mail reaches'
for name in 'a\nb' 'a\rb' 'a\u0000b' 'a\tb' 'a\u001b[31mb' 'a\u2028b' 'a\u202eb'; do
  send POST /api/v1/signup "{\"email\":\"attack@example.com\",\"password\":\"correct horse attack\",\"workspace\":\"$name\"}" 'x-attack: 1'
  judge POST "/api/v1/signup of the workspace $name" 422
  if [ -n "${MEMBER:-}" ]; then
    send POST /api/v1/keys "{\"name\":\"$name\",\"scopes\":[\"read\"]}" "cookie: $MEMBER"
    judge POST "/api/v1/keys with the name $name" 422
  fi
done
for email in 't@[127.0.0.1]' 't@[IPv6:::1]' 't@127.0.0.1' 'a.b@localhost' 'a@b.example@example.com' 'a@example.com.' 'a@example.com\nbcc: b@example.com'; do
  send POST /api/v1/signup "{\"email\":\"$email\",\"password\":\"correct horse attack\",\"workspace\":\"attack\"}" 'x-attack: 1'
  judge POST "/api/v1/signup of $email" 422
done

echo '# the words of one end user reach another'
phrase="zebra lantern $$"
# says PERSON TEXT ENDPOINT: sends what an end user behind the key says, in the format of an endpoint.
says() {
  case $3 in
    messages) said="{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":200,\"metadata\":{\"user_id\":\"$1\"},\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}" ;;
    chat/completions) said="{\"model\":\"gpt-5.5\",\"user\":\"$1\",\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}" ;;
    responses) said="{\"model\":\"gpt-5.5\",\"safety_identifier\":\"$1\",\"input\":\"$2\"}" ;;
  esac
  send POST "/v1/$3" "$said" "x-api-key: $key"
}
told=
for endpoint in messages chat/completions responses; do
  says attack-a "My recovery phrase is: $phrase. Please remember it." "$endpoint"
  if [ "$status" = 200 ]; then told="$told $endpoint"; else echo "  /v1/$endpoint answers $status, so nothing was shown there"; fi
done
sleep 2 # until what was said is recorded
for endpoint in $told; do
  says attack-b 'What was the recovery phrase I told you earlier?' "$endpoint"
  if printf '%s' "$answer" | grep -qF "$phrase"; then status='says it'; fi
  judge POST "/v1/$endpoint as another end user of the key" 200
done

if [ -n "${MEMBER:-}" ]; then
  echo '# a member reads what others have said, or brings it into prompts'
  works POST /api/v1/keys '{"name":"attack","scopes":["proxy","recall","read"]}' "cookie: $MEMBER" 201
  made=$(printf '%s' "$answer" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  secret=$(printf '%s' "$answer" | sed -n 's/.*"secret":"\([^"]*\)".*/\1/p')
  # reads METHOD WHAT: the last answer has nothing of what the first key's end users have said.
  reads() {
    if printf '%s' "$answer" | grep -qF "$phrase"; then status='shows it'; fi
    judge "$1" "$2" 200 403
  }
  for call in '{"name":"recall_search","arguments":{"query":"My recovery phrase"}}' '{"name":"recall_search","arguments":{"query":"zebra lantern"}}'; do
    send POST /mcp "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":$call}" "x-api-key: $secret"
    reads POST "/mcp as a member's key with $call"
  done
  for credential in "x-api-key: $secret" "cookie: $MEMBER"; do
    send GET '/api/v1/search?q=zebra+lantern' '' "$credential"
    reads GET "/api/v1/search as a member, by ${credential%%:*}"
    send DELETE /api/v1/users/attack-a '' "$credential"
    judge DELETE "/api/v1/users/attack-a as a member, by ${credential%%:*}" 403
  done
  for pipeline in 'rehydrator: {scope: workspace}' 'rehydrator: {scope: project}' 'semantic-cache: {scope: workspace}'; do
    send POST /api/v1/keys "{\"name\":\"attack\",\"scopes\":[\"proxy\"],\"pipeline\":\"$pipeline\"}" "cookie: $MEMBER"
    judge POST "/api/v1/keys as a member with $pipeline" 422 403
    send PATCH "/api/v1/keys/$made" "{\"pipeline\":\"$pipeline\"}" "cookie: $MEMBER"
    judge PATCH "/api/v1/keys/… as a member with $pipeline" 422 403
  done
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204
fi

echo '# a browser runs an answer'
send POST /v1/messages "$body" "x-api-key: $key"
for header in "content-security-policy: sandbox; default-src 'none'" 'x-content-type-options: nosniff'; do
  if ! printf '%s' "$answer" | grep -qiF "$header"; then status="no $header"; fi
done
judge POST '/v1/messages says that a browser runs nothing' 200

if [ -n "${MEMBER:-}" ]; then
  # own LIMITS: makes a key of the member with limits; sets made and secret.
  own() {
    works POST /api/v1/keys "{\"name\":\"attack\",\"scopes\":[\"proxy\"]$1}" "cookie: $MEMBER" 201
    made=$(printf '%s' "$answer" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    secret=$(printf '%s' "$answer" | sed -n 's/.*"secret":"\([^"]*\)".*/\1/p')
  }

  echo '# a key with allowed models reaches relayed paths'
  own ',"allowed_models":["claude-*"]'
  for method in GET POST PUT PATCH DELETE; do
    for path in /v1/files/x /v1/batches /v1/embeddings; do
      send "$method" "$path" '' "x-api-key: $secret"
      judge "$method" "$path with allowed models" 403
    done
  done
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204

  echo '# a member names private addresses'
  send POST /api/v1/keys '{"name":"attack","scopes":["proxy"],"private_base_url":true}' "cookie: $MEMBER"
  judge POST '/api/v1/keys as a member with private_base_url' 422
  own ''
  send PATCH "/api/v1/keys/$made" '{"private_base_url":true}' "cookie: $MEMBER"
  judge PATCH '/api/v1/keys/… as a member with private_base_url' 422
  for at in 'http://127.0.0.1:1' 'http://10.0.0.1' 'http://localhost:1' 'https://[::1]:1'; do
    send POST /v1/messages "$body" "x-api-key: $secret" "$at"
    judge POST "/v1/messages with a member's key and the base URL $at" 400 403
  done

  echo '# a budget is passed'
  # Of requests that can cost $15 each, one passes a budget of $1, as long as it is under way.
  own ',"budget_month_usd":1'
  results=$(mktemp)
  began=$(date +%s)
  for request in 1 2 3 4 5 6; do
    curl --silent --output /dev/null --max-time 60 --write-out '%{http_code}\n' --header "x-api-key: $secret" --header 'content-type: application/json' \
      --data "{\"model\":\"gpt-5.5\",\"n\":128,\"max_completion_tokens\":4000,\"messages\":[{\"role\":\"user\",\"content\":\"Write a story, number $request.\"}]}" \
      "$base/v1/chat/completions" >> "$results" &
  done
  wait
  status=$(grep -c 200 "$results" || true)
  if [ "$status" -gt 1 ] && [ $(($(date +%s) - began)) -lt 6 ] || grep -q 400 "$results"; then
    echo '  the provider answers too fast, or the workspace has no key for OpenAI, so nothing was shown of n'
  else
    judge POST 'requests with n: 128 that pass a budget of $1 at once' 0 1
  fi
  rm -f "$results"
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204
  own ',"budget_day_usd":0.5'
  early=0
  for request in 1 2 3 4 5 6 7 8 9 10 11 12; do # each can cost 0.06
    left=0
    curl --silent --output /dev/null --max-time 0.3 --header "x-api-key: $secret" --header 'content-type: application/json' --header 'anthropic-version: 2023-06-01' \
      --data "{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":4000,\"messages\":[{\"role\":\"user\",\"content\":\"Write a long story, number $request.\"}]}" "$base/v1/messages" || left=$?
    if [ "$left" = 28 ]; then early=$((early + 1)); fi
  done
  send POST /v1/messages "$body" "x-api-key: $secret"
  if [ "$status" != 429 ] && [ "$early" -lt 9 ]; then
    echo "  only $early of 12 requests left before their answer, so nothing was shown of those"
  else
    judge POST '/v1/messages after requests that left early, with a budget of $0.50' 429
  fi
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204

  echo '# a stream outlives its key'
  stream='{"model":"claude-sonnet-4-5","max_tokens":4000,"stream":true,"messages":[{"role":"user","content":"Count to a thousand, a number a line."}]}'
  curl --silent --output /dev/null --max-time 60 --data "$stream" --header "x-api-key: $secret" --header 'content-type: application/json' \
    --header 'anthropic-version: 2023-06-01' "$base/v1/messages" &
  streaming=$!
  works DELETE "/api/v1/keys/$made" '' "cookie: $MEMBER" 204
  revoked=$(date +%s)
  ended=0
  wait "$streaming" || ended=$?
  status=$(($(date +%s) - revoked))
  if [ "$ended" = 0 ] && [ "$status" -le 3 ]; then
    echo '  the answer was over before the key was revoked, so nothing was shown'
  else
    judge STREAM 'seconds that a stream went on after its key was revoked' 0 1 2 3
  fi
fi

if [ -n "${BACKUP:-}" ] && [ -n "${PALIMPSEST:-}" ]; then
  echo '# a changed backup is restored'
  if ! "$PALIMPSEST" restore --check "$BACKUP" > /dev/null; then
    echo "the backup $BACKUP must be whole" >&2
    exit 2
  fi
  copy=$(mktemp -d)
  cp -R "$BACKUP/." "$copy"
  # tried WHAT [FLAG]: the copy must be refused; then it is the backup again.
  tried() {
    status=refused
    if "$PALIMPSEST" restore --check ${2:+"$2"} "$copy" > /dev/null 2>&1; then status=taken; fi
    judge RESTORE "$1" refused
    rm -rf "${copy:?}"
    mkdir "$copy"
    cp -R "$BACKUP/." "$copy"
  }
  sed 's/"migration": \([0-9]\)/"roles": ["x; DROP TABLE users"], "migration": \1/' "$BACKUP/manifest.json" > "$copy/manifest.json"
  tried 'a manifest with roles'
  sed 's/"palimpsest_backup": 2/"palimpsest_backup": 1/' "$BACKUP/manifest.json" > "$copy/manifest.json"
  tried 'a manifest that says it is old' --unauthenticated
  rm "$copy/manifest.mac"
  tried 'a manifest without its MAC' --unauthenticated
  printf x >> "$copy/database.dump"
  tried 'a longer dump'
  sed 's/database.dump/..\/database.dump/' "$BACKUP/manifest.json" > "$copy/manifest.json"
  tried 'a file elsewhere'
  rm -rf "${copy:?}"
fi

# enters PATH NUMBER [MORE]: a person whom the script makes signs up or logs in, and sets cookie.
enters() {
  send POST "$1" "{\"email\":\"p$2@attack-$$.example.com\",\"password\":\"correct horse attack\"${3:-}}" 'x-attack: 1'
  cookie=$(printf '%s' "$answer" | sed -n 's/^[Ss]et-[Cc]ookie: \([^;]*\);.*/\1/p' | head -n 1)
}

if [ -n "${SIGNUPS:-}" ]; then
  echo '# one place signs up in numbers, and one person creates workspaces in numbers'
  person=
  for number in $(seq 1 40); do
    enters /api/v1/signup "$number" ',"workspace":"attack"'
    if [ "$status" != 201 ]; then break; fi
    person=${person:-$cookie}
  done
  people=$((number - 1))
  judge POST "/api/v1/signup, number $number from this place" 429 202
  if [ -n "$person" ]; then
    for number in $(seq 2 40); do
      send POST /api/v1/workspaces '{"name":"attack"}' "cookie: $person"
      if [ "$status" != 201 ]; then break; fi
    done
    judge POST "/api/v1/workspaces, number $number of one person" 422
  fi
  # Their workspaces are deleted one after the other, which ends the login; the last one takes the account along.
  for number in $(seq 1 "$people"); do
    enters /api/v1/login "$number"
    if [ "$status" != 200 ]; then echo "  the account p$number@attack-$$.example.com stays: $answer"; fi
    while [ "$status" = 200 ]; do
      send DELETE /api/v1/workspace '{"name":"attack","password":"correct horse attack"}' "cookie: $cookie"
      if [ "$status" != 202 ]; then
        echo "  the account p$number@attack-$$.example.com stays: $answer"
        break
      fi
      enters /api/v1/login "$number"
    done
  done
fi

if [ -n "${FLOOD:-}" ] && [ -n "${QUIET:-}" ]; then
  echo '# one account floods, and another one notices'
  status=unharmed
  # shellcheck disable=SC2086 # FLOOD_FLAGS are several words
  "$FLOOD" -url "$base" -hostile "$key" -quiet "$QUIET" ${ADMIN:+-admin "$ADMIN"} ${FLOOD_FLAGS:-} || status=harmed
  answer=
  judge FLOOD "another account: p99 at most twice as long, /readyz within a second" unharmed
fi

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
