-- Single enqueues, 70 bytes of payload, one job per request.
wrk.method = "POST"
wrk.path = "/api/v1/enqueue"
wrk.headers["content-type"] = "application/json"
wrk.body = '{"queue":"bench","payload":'
  .. '{"to":"user@example.com","template":"welcome","locale":"en","n":12345}}'
