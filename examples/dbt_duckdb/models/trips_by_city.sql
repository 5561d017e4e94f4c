{{ config(hudi={'key': 'id', 'partition_by': 'city', 'operation': 'insert_overwrite'}) }}
select id, fare, city from {{ ref('trips') }}
{% if load_relation(this) is not none %} where city = 'oslo' {% endif %}
