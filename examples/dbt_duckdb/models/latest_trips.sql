{{ config(
    hudi={'key': 'id', 'order_by': 'started', 'operation': 'upsert'},
    on_schema_change='append_new_columns'
) }}
select id, city, fare, started {%- if var('with_tax', false) %}, fare * 0.2 as tax {%- endif %}
from {{ ref('trips') }}
{% if load_relation(this) is not none %} where started >= (select max(started) from {{ this }}) {% endif %}
