-- The mixed script with limit keys: jobs of 64 keys, none of which is the saturated one.
wrk.headers["content-type"] = "application/json"

local fetch_body = '{"queues":["gated"],"worker_id":"bench-1","timeout":5,"lease_duration":3}'
local enqueue_requests = {}
local fetch_request
local turn = 0
local fetched = {}

function init(arguments)
  for n = 1, 64 do
    local body = '{"queue":"gated","limit_key":"key-' .. n .. '","payload":'
      .. '{"to":"user@example.com","template":"welcome","locale":"en","n":12345}}'
    enqueue_requests[n] = wrk.format("POST", "/api/v1/enqueue", nil, body)
  end
  fetch_request = wrk.format("POST", "/api/v1/fetch", nil, fetch_body)
end

function request()
  local job = table.remove(fetched)
  if job then
    return wrk.format("POST", "/api/v1/ack/" .. job[1], nil, '{"lease_token":' .. job[2] .. '}')
  end
  turn = turn + 1
  if turn % 2 == 1 then
    return enqueue_requests[(turn - 1) / 2 % 64 + 1]
  end
  return fetch_request
end

function response(status, headers, body)
  local token = body:match('"lease_token":(%d+)')
  if token then
    fetched[#fetched + 1] = { body:match('"job_id":"([^"]+)"'), token }
  end
end
