{{ config(materialized='table') }}
select city, sum(fare) as fare from {{ ref('latest_trips') }} group by city
