-- Enqueue, fetch and ack, one job per request. A job that was fetched is acknowledged by the next
-- request of the thread; otherwise enqueue and fetch take turns, so that a fetch finds a job.
wrk.headers["content-type"] = "application/json"

local enqueue_body = '{"queue":"bench","payload":'
  .. '{"to":"user@example.com","template":"welcome","locale":"en","n":12345}}'
local fetch_body = '{"queues":["bench"],"worker_id":"bench-1","timeout":5,"lease_duration":3}'
local enqueue_request, fetch_request
local turn = 0
local fetched = {}

function init(arguments)
  enqueue_request = wrk.format("POST", "/api/v1/enqueue", nil, enqueue_body)
  fetch_request = wrk.format("POST", "/api/v1/fetch", nil, fetch_body)
end

function request()
  local job = table.remove(fetched)
  if job then
    return wrk.format("POST", "/api/v1/ack/" .. job[1], nil, '{"lease_token":' .. job[2] .. '}')
  end
  turn = turn + 1
  if turn % 2 == 1 then
    return enqueue_request
  end
  return fetch_request
end

function response(status, headers, body)
  local token = body:match('"lease_token":(%d+)')
  if token then
    fetched[#fetched + 1] = { body:match('"job_id":"([^"]+)"'), token }
  end
end
