{{ config(
    materialized='incremental', incremental_strategy='insert_overwrite', partition_by='city'
) }}
select id, fare, city from {{ ref('trips') }}
{% if is_incremental() %} where city = 'oslo' {% endif %}
