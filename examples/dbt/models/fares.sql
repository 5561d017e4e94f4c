{{ config(materialized='view') }}
select city, sum(fare) as fare from {{ ref('trips') }} group by city
