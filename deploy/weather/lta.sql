SELECT window_end, max(samplingtime) AS last, avg(rainrate) AS rain, max(windspeed) AS wind
FROM weather
GROUP BY HOP(samplingtime, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)
